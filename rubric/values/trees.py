"""
Decision trees: one narrow question at a node, a score at each leaf.

    ask("Did it call the tool?").yes(ask("Does it state a temperature?").yes(1.0).no(0.4)).no(0.0)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from attrs import field, frozen

from rubric.errors import DefinitionError
from rubric.internals.fields import Shown, number, plain_number, refuse, string, text
from rubric.internals.guided import guided, guided_class
from rubric.internals.notebooks import as_html
from rubric.values.answers import Answer

_DEEPEST = 64


@guided_class
@frozen(repr=False)
class Leaf(Shown):
    """The end of a walk: a *score* in 0..1, and the *reason* for it."""

    score: float = field(validator=number(0, 1))
    reason: str = field(default="", kw_only=True, validator=string)


def _branch(name: str, value: object, reason: str = "") -> DecisionTree | Leaf:
    if isinstance(value, Question | HalfAnswered):
        raise DefinitionError(name, f"{value!r} is a question that lacks a branch; give it both .yes(...) and .no(...)")
    if isinstance(value, DecisionTree):
        if reason:
            raise DefinitionError(name, "a reason goes with a score, not with a further question")
        return value
    score = value.score if isinstance(value, Leaf) else plain_number(value)
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise refuse(name, value, "a DecisionTree, a Leaf or a score from 0 to 1 (1.0 passes, 0.0 fails)")
    if isinstance(value, Leaf) and not reason:
        return value
    return Leaf(score, reason=reason or "")


def _as_yes(value: DecisionTree | Leaf | float) -> DecisionTree | Leaf:
    return _branch("yes", value)


def _as_no(value: DecisionTree | Leaf | float) -> DecisionTree | Leaf:
    return _branch("no", value)


@guided_class
@frozen(repr=False)
class DecisionTree(Answer, Shown):
    """
    A yes/no *question* with a branch for each answer: another tree, or a leaf (a bare number will do).

    The judge answers with a score; 0.5 or more is a yes (mcptest, "Rubric scoring", decision trees).
    """

    _positional = ("question",)

    question: str = field(validator=text)
    yes: DecisionTree | Leaf = field(converter=_as_yes)
    no: DecisionTree | Leaf = field(converter=_as_no)

    def __attrs_post_init__(self) -> None:
        if self.depth > _DEEPEST:
            raise DefinitionError("question", f"a tree is at most {_DEEPEST} questions deep, this one {self.depth}")

    @cached_property
    def depth(self) -> int:
        """The number of questions on the longest walk."""
        return 1 + max((b.depth for b in (self.yes, self.no) if isinstance(b, DecisionTree)), default=0)

    @cached_property
    def shortest(self) -> int:
        """The number of questions on the shortest walk."""
        return 1 + min(b.shortest if isinstance(b, DecisionTree) else 0 for b in (self.yes, self.no))

    _repr_html_ = as_html

    def nodes(self) -> Iterator[DecisionTree]:
        """Yield this node and those below it, the yes branch first."""
        yield self
        for branch in (self.yes, self.no):
            if isinstance(branch, DecisionTree):
                yield from branch.nodes()

    def leaves(self) -> Iterator[Leaf]:
        """Yield the leaves, the yes branch first."""
        for branch in (self.yes, self.no):
            if isinstance(branch, Leaf):
                yield branch
            else:
                yield from branch.leaves()


@frozen(repr=False)
class Question(Shown):
    """A question without its branches: half of a tree, and so not yet a tree."""

    question: str = field(validator=text)

    def yes(self, branch: DecisionTree | Leaf | float, /, reason: str = "") -> HalfAnswered:
        """Return the question with its yes branch; *reason* goes with a bare score."""
        return HalfAnswered(self.question, if_yes=_branch("yes", branch, reason))

    def no(self, branch: DecisionTree | Leaf | float, /, reason: str = "") -> HalfAnswered:
        """Return the question with its no branch; *reason* goes with a bare score."""
        return HalfAnswered(self.question, if_no=_branch("no", branch, reason))


@frozen(repr=False)
class HalfAnswered(Shown):
    """A question with one branch; the other one makes it a tree."""

    question: str
    if_yes: DecisionTree | Leaf | None = field(default=None, kw_only=True)
    if_no: DecisionTree | Leaf | None = field(default=None, kw_only=True)

    def yes(self, branch: DecisionTree | Leaf | float, /, reason: str = "") -> DecisionTree:
        """Return the tree, with *branch* for a yes."""
        if self.if_yes is not None or self.if_no is None:
            raise self._is_taken("yes")
        return DecisionTree(self.question, yes=_branch("yes", branch, reason), no=self.if_no)

    def no(self, branch: DecisionTree | Leaf | float, /, reason: str = "") -> DecisionTree:
        """Return the tree, with *branch* for a no."""
        if self.if_no is not None or self.if_yes is None:
            raise self._is_taken("no")
        return DecisionTree(self.question, yes=self.if_yes, no=_branch("no", branch, reason))

    def _is_taken(self, name: str) -> DefinitionError:
        return DefinitionError(name, f"the question {self.question!r} has its {name} branch already")


@guided
def ask(question: str, /) -> Question:
    """Return *question*, to be given its branches: `ask("Is it polite?").yes(1.0).no(0.0)`."""
    return Question(question)
