"""The simulator against a real Spark, with jobs that sleep."""
