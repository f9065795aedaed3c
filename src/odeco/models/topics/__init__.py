"""What both topic models share."""
