"""Converts a Laya checkpoint into Core ML packages without torch."""
