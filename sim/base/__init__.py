"""Foundation of all other packages; independent of scheduling."""
