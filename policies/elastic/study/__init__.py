"""Study of elastic jobs, beside published gains."""
