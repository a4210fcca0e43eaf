"""What `benchmarks.peers` compares: this project and others, each behind the one protocol of `base`."""
