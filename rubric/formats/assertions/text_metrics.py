"""
Graders that compare the words or letters of an output with references: promptfoo's `rouge-n` (Lin 2004), `bleu`
(Papineni et al. 2002), `gleu` (Wu et al. 2016) and `levenshtein`; docs/how-to/from_promptfoo.md has their thresholds.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from math import exp, log
from statistics import fmean

from attrs import frozen

from rubric import Candidate
from rubric.embed import Decided, shorten

EXTRA = "pip install 'rubric-grade[metrics]'"

_SMALLEST = 1e-7
"""The precision of BLEU where none of the words, pairs, ... occurs: its logarithm would have no value."""


def _words(text: str) -> list[str]:
    return text.lower().split()


def _rouge(output: str, references: Sequence[str]) -> float:
    from nltk.tokenize.treebank import TreebankWordTokenizer  # noqa: PLC0415 - an extra

    split = TreebankWordTokenizer().tokenize
    found = Counter(split(output.lower()))
    counts = [Counter(split(reference.lower())) for reference in references]
    # The harmonic mean of precision and recall: promptfoo's since js-rouge 3.1, which had the recall alone before.
    return max(2 * (found & wanted).total() / max(found.total() + wanted.total(), 1) for wanted in counts)


def _bleu(output: str, references: Sequence[str]) -> float:
    # Not NLTK's: it has four orders also where the output has fewer words, and takes each n-gram's nearest reference.
    found, wanted = _words(output), [*map(_words, references)]
    precisions = [
        max((ours & Counter(_grams(words, order))).total() for words in wanted) / ours.total()
        for order in range(1, 5)
        if (ours := Counter(_grams(found, order)))
    ]
    if not precisions:
        return 0.0
    length = min((len(words) for words in wanted), key=lambda length: (abs(length - len(found)), length))
    brevity = min(1.0, exp(1 - length / len(found)))
    return brevity * exp(fmean(log(precision or _SMALLEST) for precision in precisions))


def _grams(words: Sequence[str], order: int) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(order)), strict=False)


def _gleu(output: str, references: Sequence[str]) -> float:
    from nltk.translate.gleu_score import sentence_gleu  # noqa: PLC0415 - an extra

    def words(text: str) -> list[str]:
        return [word.rstrip(".") for word in _words(text)]

    return float(sentence_gleu([*map(words, references)], words(output)))


_SCORES: dict[str, Callable[[str, Sequence[str]], float]] = {"rouge-n": _rouge, "bleu": _bleu, "gleu": _gleu}

THRESHOLDS = {"rouge-n": 0.75, "bleu": 0.5, "gleu": 0.5, "levenshtein": 5.0}
"""The types that are read here, without `not-`, and their thresholds."""

SEVERAL = frozenset({"bleu", "gleu"})
"""Those that take several references, of which the nearest counts."""


def is_installed() -> bool:
    """True if the libraries of the extra `metrics` can be imported."""
    return all(find_spec(library) is not None for library in ("nltk", "rapidfuzz"))


def _units(text: str) -> array[int]:
    """Return *text* in the letters that JavaScript counts, where most emoji are two."""
    return array("H", text.encode("utf-16-le", "surrogatepass"))


@frozen
class TextMetric:
    """A function for `Holds`: the output comes to *threshold* by a reference; of `levenshtein`, at most to it."""

    kind: str
    references: tuple[str, ...]
    threshold: float

    @property
    def __name__(self) -> str:
        return shorten(f"{self.kind}: {' or '.join(self.references)}", 80)

    def __call__(self, candidate: Candidate) -> Decided:
        """Return the score of *candidate*."""
        if self.kind == "levenshtein":
            return self._distance(candidate.output)
        score = min(max(_SCORES[self.kind](candidate.output, self.references), 0.0), 1.0)
        reason = f"{self.kind} {score:.4g}, threshold {self.threshold:g}"
        return Decided(score, reason=reason, passed=score >= self.threshold)

    def _distance(self, output: str) -> Decided:
        from rapidfuzz.distance import Levenshtein  # noqa: PLC0415 - an extra

        most = int(min(self.threshold, _FARTHEST))
        found = Levenshtein.distance(_units(output), _units(self.references[0]), score_cutoff=most)
        near = found <= most
        reason = f"{'' if near else 'more than '}{min(found, most)} letters differ"
        return Decided(float(near), reason=reason, passed=near)


_FARTHEST = 1 << 30
"""The distance that no text has; beyond the threshold none is counted, which keeps the time short."""
