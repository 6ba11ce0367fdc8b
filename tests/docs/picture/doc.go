// Package picture draws the pictures of the pages in the folder docs as SVG. They are text,
// need no library, and are readable on light and dark pages. The command write in package
// docs writes them.
package picture
