package picture

// Dir is the folder of the pictures in the repository.
const Dir = "docs/pictures"

// All returns the pictures as SVG documents, by the names of their files.
func All() map[string]string {
	return map[string]string{
		"deployments.svg":      deployments(),
		"handoff.svg":          handoff(),
		"lease-timeline.svg":   leaseTimeline(),
		"middleware-order.svg": middlewareOrder(),
		"overview.svg":         overview(),
	}
}
