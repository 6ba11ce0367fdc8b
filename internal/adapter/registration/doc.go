// Package registration checks the arguments of an adapter when a program registers its routes.
package registration
