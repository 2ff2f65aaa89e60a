"""DAGPS: troublesome tasks first (Grandl et al., *Do the hard stuff first*, MSR-TR-2016-19)."""
