"""What a scheduler that does not know the truth expects of jobs, stages and tasks."""
