"""Schedulers outside the process: a program that reads events and answers with changed columns."""
