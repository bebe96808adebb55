"""The examples' progress line: step, latest numbers, time left. Knows nothing of models."""

from collections.abc import Iterator

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class Line:
    """Counts steps on one live terminal line, with the numbers that `show` was last given."""

    def __init__(self, steps: int, label: str = "training") -> None:
        """Count to `steps`; `label` opens the line."""
        self.steps = steps
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}"),
            TimeRemainingColumn(elapsed_when_finished=True),
        )
        self.task = self.progress.add_task(label, total=steps, numbers="")

    def __iter__(self) -> Iterator[int]:
        """Yield 0, 1, … and advance the line after each step."""
        with self.progress:
            for step in range(self.steps):
                yield step
                self.progress.advance(self.task)

    def show(self, **numbers: float) -> None:
        """Put the latest numbers on the line: `line.show(loss=0.31)`."""
        text = "  ".join(f"{name} {value:.4g}" for name, value in numbers.items())
        self.progress.update(self.task, numbers=text)
