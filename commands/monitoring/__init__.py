"""What an operator measures while ``run`` works: metrics, traces, health; nothing of it decides anything."""
