package catalogue

func attackRows() []Row {
	return []Row{
		{
			Number:  51,
			Trigger: "Another user of Redis with the right to publish forges messages, with tokens that a process has issued or will issue.",
			Right:   "No message frees or grants a lock. A message causes one check, and the work that messages cause is bounded.",
		},
	}
}
