// Package chart draws bar charts as SVG, by hand: they are text, need nothing to
// be drawn, and are readable on light and dark pages.
package chart
