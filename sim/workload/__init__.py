"""What is submitted: tables, columns, validation, folder and digest, transformations."""
