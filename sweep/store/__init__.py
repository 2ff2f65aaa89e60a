"""What is kept: cells by content, the journal, a sweep's folder, where numbers come from."""
