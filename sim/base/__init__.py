"""What everything stands on; knows nothing of scheduling."""
