"""What `doctor` finds, on machines that tests make up."""
