"""scripts/gpu_probe: questions, one file a subject; a question is a function under @probe(NUMBER)."""
