// Package service has what the suites with a service over loopback share: its server, its
// concurrent clients, and the costs of its requests.
package service
