"""Sequence whose elements are made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class LazySequence(Sequence[T], Generic[T]):
    """A sequence that stores nothing: each element is computed from its index."""

    def __init__(self, n: int, make: Callable[[int], T]) -> None:
        self._n = n
        self._make = make

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...

    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            part = range(self._n)[index]
            return LazySequence(len(part), lambda k: self._make(part[k]))
        return self._make(range(self._n)[index])

    def __iter__(self) -> Iterator[T]:
        return map(self._make, range(self._n))

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Sequence) and [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]
