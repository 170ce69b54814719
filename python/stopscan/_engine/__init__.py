"""What the adapters of vLLM and sglang share: options, limits, sets, regions, failures, a tokenizer to test with."""
