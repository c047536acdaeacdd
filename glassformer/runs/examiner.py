"""Who examines checkpoints: an extension's `examines` names an `Examiner`, and pages ask it."""

from glassformer.server.jobs import Job
from transformer.checkpoint.load import Checkpoint
from transformer.extensions import provided


class Examiner:
    """Tests of a checkpoint."""

    def counts(self, checkpoint: Checkpoint, job: Job) -> tuple[int, int, int] | None:
        """How many tests find it broken, worth a look, and well; None if that failed.

        It waits for its turn among other visitors' examinations, and ends where the job is stopped.
        """
        raise NotImplementedError


def examiner() -> Examiner | None:
    """The first there is; None without any."""
    return next(iter(provided("examines")), None)
