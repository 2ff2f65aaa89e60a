"""Earlier place of `sweep.questions.papers`, for studies of users' own."""
