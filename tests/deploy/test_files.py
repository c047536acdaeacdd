"""The files for HAProxy and compose are read by what reads them, and fit what there is."""

import re
import subprocess

import pytest
import yaml
from streamlit import config

from glassformer.extensions.replicas import server_part
from glassformer.server import replicas, server_options
from tests.deploy.by_hand import configuration, needed
from tools.serve import ROOT

PROXY = ROOT / "deploy" / "haproxy.cfg"
COMPOSE = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))
CONTAINER = (ROOT / "Containerfile").read_text(encoding="utf-8")
CONFIG = PROXY.read_text(encoding="utf-8")
OURS = {
    server_part.DRAIN, server_part.LOG, server_part.METRICS, replicas.SHARED, replicas.STORE,
    server_options.ENVIRONMENT,
    server_options.TRAINING[0],
}  # fmt: skip


@pytest.mark.parametrize("which", ["as it is", "by hand"])
def test_haproxy_takes_its_file_asks_what_the_app_answers_and_hides_what_is_not_for_all(which, tmp_path):
    file = tmp_path / "haproxy.cfg"
    file.write_text(CONFIG if which == "as it is" else configuration(8080, (8501, 8502)))
    checked = subprocess.run([needed("haproxy"), "-c", "-f", file], capture_output=True, text=True, check=False)
    assert (checked.returncode, "WARNING" in checked.stderr) == (0, False), checked.stderr
    assert re.findall(r"uri /(\w+)", CONFIG) == [server_part.READY, server_part.HEALTH]
    assert f"path,url_dec -m end /{server_part.COUNTED} " in CONFIG


def test_the_services_of_compose_fit_together():
    services = COMPOSE["services"]
    app, proxy, kept = services["app"], services["proxy"], services["store"]
    assert (ROOT / "deploy" / app["build"]["context"] / app["build"]["dockerfile"]).is_file()
    port = re.search(r"^EXPOSE (\d+)$", CONTAINER, flags=re.MULTILINE)[1]
    assert re.findall(r"server-template app 8 (\S+)", CONFIG) == [f"app:{port}"] * 2
    (bound,) = re.findall(r"^\s*bind :(\d+)", CONFIG, flags=re.MULTILINE)
    assert proxy["ports"] == [f"{bound}:{bound}"]
    source, target, how = proxy["volumes"][0].split(":")
    assert (ROOT / "deploy" / source == PROXY, how) == (True, "ro")
    assert target == "/usr/local/etc/haproxy/haproxy.cfg"  # where the image looks for it
    assert app["environment"][replicas.STORE] == "redis://store:6379/0"
    assert "--appendonly yes" in kept["command"]
    for service in services.values():
        assert set(service.get("depends_on", ())) <= set(services)
        named = {volume.split(":")[0] for volume in service.get("volumes", ()) if not volume.startswith(".")}
        assert named <= set(COMPOSE["volumes"])


def test_what_compose_sets_is_known_to_the_code():
    said = COMPOSE["services"]["app"]["environment"]
    assert {name for name in said if name.startswith("GLASSFORMER_")} <= OURS
    owned = re.search(r"mkdir (.*?) \\\n.*chown -R glassformer (.*)", CONTAINER)
    mounted = {volume.split(":")[1] for volume in COMPOSE["services"]["app"]["volumes"]}
    assert mounted == set(owned[1].split()) <= set(owned[2].split())  # a volume begins as what it covers
    assert said[replicas.SHARED] in mounted
    options = config.get_config_options()
    named = {"STREAMLIT_" + re.sub(r"(?<!^)(?=[A-Z])", "_", one.replace(".", "_")).upper() for one in options}
    assert {name for name in said if not name.startswith("GLASSFORMER_")} <= named
