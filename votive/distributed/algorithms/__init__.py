"""What is done with gradients on their way between ranks."""
