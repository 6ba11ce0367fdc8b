// Package console tests the pages of package console in a browser.
package console
