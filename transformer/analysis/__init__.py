"""What models and traces show when they are measured: functions over arrays, and what feeds them."""
