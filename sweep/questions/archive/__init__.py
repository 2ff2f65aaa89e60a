"""A sweep as one file that another machine verifies: written, read, run again and compared."""
