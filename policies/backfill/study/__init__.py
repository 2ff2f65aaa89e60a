"""Study of backfilling on a real log, beside the numbers of its papers."""
