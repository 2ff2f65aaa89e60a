"""The cells of a grid as an index: each is made when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class LazySequence(Sequence[T], Generic[T]):
    """A sequence of which nothing is kept: an element follows from its place."""

    def __init__(self, n: int, make: Callable[[int], T]) -> None:
        self._n = n
        self._make = make

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, at: int) -> T: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[T]: ...

    def __getitem__(self, at: int | slice) -> T | Sequence[T]:
        if isinstance(at, slice):
            part = range(self._n)[at]
            return LazySequence(len(part), lambda k: self._make(part[k]))
        return self._make(range(self._n)[at])

    def __iter__(self) -> Iterator[T]:
        return map(self._make, range(self._n))

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Sequence) and [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]
