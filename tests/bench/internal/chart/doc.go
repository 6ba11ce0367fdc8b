// Package chart draws bar charts as SVG. They are text, need no library, and are readable
// on light and dark pages.
package chart
