package catalogue

func attackRows() []Row {
	return []Row{
		{
			Number:  51,
			Trigger: "Another user of Redis who may publish forges messages, with tokens that a process has issued, or issues next.",
			Right:   "No lock is freed or granted by a message. A message costs a look, and the work that messages cause is bounded.",
		},
	}
}
