"""Jobs, and the sensors and schedules that ask for their runs: thin, deciding through the library's pure functions."""
