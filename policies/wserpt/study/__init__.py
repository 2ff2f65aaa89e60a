"""Study of the joined policy: where it is best, its parts taken away alone, and the pages."""
