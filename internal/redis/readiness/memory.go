package readiness

// evictionPolicy returns the maxmemory-policy of a server that evicts keys when its memory is
// full. It returns "" if the server evicts no keys, or does not report its policy.
func evictionPolicy(info map[string]string) (policy string) {
	policy = info["maxmemory_policy"]
	if limit := info["maxmemory"]; limit == "" || limit == "0" || policy == "noeviction" {
		return ""
	}
	return policy
}
