"""What the commands do, a file for each family of them."""
