"""What docs/hosting.md has people do by hand: HAProxy's configuration, made by the command that stands there."""

import re
import subprocess

from tools.programs import find
from tools.serve import ROOT

PORT, REPLICAS = "8080", ("8501", "8502")  # that the page says


def needed(program):
    """Where a program is that tests need."""
    found = find(program)
    assert found, f"{program} is not installed; `make test` installs it where it may"
    return found


def configuration(port, replicas):
    """HAProxy's file, with other ports than the page's, and nobody's rights to give up."""
    page = (ROOT / "docs" / "hosting.md").read_text(encoding="utf-8")
    command = re.search(r"^sed -e .*?haproxy\.cfg(?= \|)", page, flags=re.MULTILINE | re.DOTALL)[0]
    made = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "    user haproxy\n    group haproxy\n" in made
    made = re.sub(r"    (user|group) haproxy\n", "", made)
    for said, ours in zip((PORT, *REPLICAS), (port, *replicas), strict=True):
        assert f":{said}" in made
        made = made.replace(f":{said}", f":{ours}")
    return made
