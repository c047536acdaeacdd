"""What any page draws with: the menu, controls, charts with their notes, style, numbers."""
