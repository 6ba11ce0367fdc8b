package main

import (
	"fmt"
	"io"
	"strings"
)

// printCurls prints commands with which a person can try the service at a URL.
func printCurls(out io.Writer, url string) {
	const text = `
The service stays up at URL until ctrl-C. From another terminal:

  A transfer, and what is left:
    curl -H 'Authorization: Bearer alice' -d '{"to":"bob","cents":500}' URL/accounts/alice/transfer
    curl -H 'Authorization: Bearer alice' URL/accounts/alice

  Two transfers at once: the second is refused with 409 and Retry-After.
    curl -H 'Authorization: Bearer alice' -d '{"to":"bob","cents":500}' 'URL/accounts/alice/transfer?slow=3s' & sleep 0.5
    curl -i -H 'Authorization: Bearer bob' -d '{"to":"alice","cents":500}' URL/accounts/bob/transfer; wait

  Two orders of one user at once: the second waits for the first, some 2.5 s.
    curl -H 'Authorization: Bearer ann' -d '{"item":"tea"}' 'URL/me/orders?slow=3s' & sleep 0.5
    curl -w 'after %{time_total} s\n' -H 'Authorization: Bearer ann' -d '{"item":"milk"}' URL/me/orders; wait
`
	fmt.Fprintln(out, strings.ReplaceAll(text, "URL", url))
}
