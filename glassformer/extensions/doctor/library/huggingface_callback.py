"""The doctor as a callback of Hugging Face's Trainer: `DoctorCallback` for start, log, step and end of a training.

    doctor = DoctorCallback(pairs, tokenizer, every=500)
    Trainer(model, arguments, train_dataset=data, callbacks=[doctor]).train()
    sys.exit(doctor.outcome.status)

The one module that imports transformers.
"""

from typing import Any

from transformers import TrainerCallback

from glassformer.extensions.doctor.library.watching import BROKEN, Pairs, Watching, WatchOutcome, watch


class DoctorCallback(TrainerCallback):
    """Watches the model of a Trainer, in its first process; has its `outcome` after the training.

    Args:
        pairs: Texts that the training does not see; see `watch`.
        tokenizer: The model's; None for the Trainer's own.
        stop: Whether the training ends once something is broken, instead of going on.
        **options: As `watch` has them.
    """

    def __init__(self, pairs: Pairs, tokenizer: Any = None, *, stop: bool = False, **options: Any) -> None:
        self.outcome: WatchOutcome | None = None
        self._pairs, self._tokenizer, self._stop, self._options = pairs, tokenizer, stop, options
        self._watching: Watching | None = None
        self._loss: float | None = None

    def on_train_begin(
        self, args: Any, state: Any, control: Any, *, model: Any = None, processing_class: Any = None, **_: Any
    ) -> None:
        """Read the model; a GlassformerError says why it cannot be read."""
        if state.is_world_process_zero:
            tokenizer = processing_class if self._tokenizer is None else self._tokenizer
            self._watching = watch(model, tokenizer, self._pairs, **self._options)
            self._watching.steps = state.global_step

    def on_log(self, args: Any, state: Any, control: Any, *, logs: Any = None, **_: Any) -> None:
        """Keep the loss that the Trainer reports."""
        self._loss = (logs or {}).get("loss", self._loss)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Count the step; examine the model at every so many."""
        if self._watching is None:
            return
        report = self._watching.step(loss=self._loss, step=state.global_step)
        if report is not None and self._stop and self._watching.status == BROKEN:
            control.should_training_stop = True

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Examine what was trained, and write the page."""
        if self._watching is not None:
            self.outcome = self._watching.close()
