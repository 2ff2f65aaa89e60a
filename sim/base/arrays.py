"""Types of arrays, by kind and bytes as NumPy spells them: ``F8`` is float64, of any shape."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
I4 = NDArray[np.int32]
I1 = NDArray[np.int8]
U8 = NDArray[np.uint64]
U1 = NDArray[np.uint8]
Mask = NDArray[np.bool_]
