// Command faults is the fault campaign of reqlock.
package main

func main() {}
