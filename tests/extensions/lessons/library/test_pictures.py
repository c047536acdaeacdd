"""What lessons outline and cover are pictures that their pages have."""

from glassformer.extensions.lessons.library import lessons
from glassformer.runs.picture import PAGES, PICTURES, declare_all

declare_all()

NO_PICTURES = {"*", "part", "results", "trained_for"}


def test_lessons_outline_and_cover_pictures_that_there_are():
    whole = {path for path, page in PAGES.items() if all(part.pictures for part in page.parts.values())}
    steps = [step for one in lessons().values() for step in one.steps if step.page in whole]
    words = {(step.page, word) for step in steps for word in {*step.look, *step.cover} - NO_PICTURES}
    there = {(picture.part.page.path, key) for key, picture in PICTURES.items()}
    assert [(page, word) for page, word in words if (page, word) not in there] == []
