"""What is used to work on the project and is not installed with it."""
