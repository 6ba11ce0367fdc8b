package main

import (
	"fmt"
	"io"
	"strings"
)

// printCommands prints commands to try the services of all sites. The HTTP services
// differ only in the port.
func printCommands(out io.Writer, sites []*site) {
	fmt.Fprint(out, "\nThe services stay up until ctrl-C. From another terminal:\n")
	var web, rpc []*site
	for _, s := range sites {
		if s.Protocol == httpProtocol {
			web = append(web, s)
		} else {
			rpc = append(rpc, s)
		}
	}
	if len(web) > 0 {
		fmt.Fprint(out, "\nHTTP: choose one\n")
		for _, s := range web {
			fmt.Fprintf(out, "    url=http://%s  # %s\n", s.server.Addr, s.Name)
		}
		fmt.Fprint(out, curls)
	}
	for _, s := range rpc {
		fmt.Fprint(out, strings.ReplaceAll(grpcurls, "ADDR", s.server.Addr))
	}
}

const curls = `
  A transfer, and what is left:
    curl -H 'Authorization: Bearer alice' -d '{"to":"bob","cents":500}' $url/accounts/alice/transfer
    curl -H 'Authorization: Bearer alice' $url/accounts/alice

  Two transfers at once: the second is refused with 409 and Retry-After.
    curl -H 'Authorization: Bearer alice' -d '{"to":"bob","cents":500}' "$url/accounts/alice/transfer?slow=3s" & sleep 0.5
    curl -i -H 'Authorization: Bearer bob' -d '{"to":"alice","cents":500}' $url/accounts/bob/transfer; wait

  Two orders of one user at once: the second waits for the first, some 2.5 s.
    curl -H 'Authorization: Bearer ann' -d '{"item":"tea"}' "$url/me/orders?slow=3s" & sleep 0.5
    curl -w 'after %{time_total} s\n' -H 'Authorization: Bearer ann' -d '{"item":"milk"}' $url/me/orders; wait

  A payment that is sent twice: one charge. The second answer is the first one, with Idempotent-Replayed.
    curl -i -H 'Authorization: Bearer carol' -H 'Idempotency-Key: "8e03978e-40d5"' -d '{"to":"dave","cents":500}' $url/accounts/carol/payments
    curl -i -H 'Authorization: Bearer carol' -H 'Idempotency-Key: "8e03978e-40d5"' -d '{"to":"dave","cents":500}' $url/accounts/carol/payments
`

const grpcurls = `
gRPC, with grpcurl (github.com/fullstorydev/grpcurl):
    addr=ADDR

  A transfer, and what is left:
    grpcurl -plaintext -H 'authorization: Bearer alice' -d '{"account":{"id":"alice"},"payee":{"id":"bob"},"cents":500}' $addr reqlock.bank.v1.Bank/Transfer
    grpcurl -plaintext -H 'authorization: Bearer alice' -d '{"account":{"id":"alice"}}' $addr reqlock.bank.v1.Bank/Balance

  Two transfers at once: the second is refused with ABORTED and RetryInfo.
    grpcurl -plaintext -H 'authorization: Bearer alice' -H 'slow: 3s' -d '{"account":{"id":"alice"},"payee":{"id":"bob"},"cents":500}' $addr reqlock.bank.v1.Bank/Transfer & sleep 0.5
    grpcurl -plaintext -H 'authorization: Bearer bob' -d '{"account":{"id":"bob"},"payee":{"id":"alice"},"cents":500}' $addr reqlock.bank.v1.Bank/Transfer; wait

  Two orders of one user at once: the second waits for the first, some 2.5 s.
    grpcurl -plaintext -H 'authorization: Bearer ann' -H 'slow: 3s' -d '{"item":"tea"}' $addr reqlock.bank.v1.Bank/PlaceOrder & sleep 0.5
    time grpcurl -plaintext -H 'authorization: Bearer ann' -d '{"item":"milk"}' $addr reqlock.bank.v1.Bank/PlaceOrder; wait

  A payment that is sent twice: one charge. The second answer is the first one, with idempotent-replayed.
    grpcurl -v -plaintext -H 'authorization: Bearer carol' -H 'idempotency-key: "8e03978e-40d5"' -d '{"account":{"id":"carol"},"payee":{"id":"dave"},"cents":500}' $addr reqlock.bank.v1.Bank/Transfer
    grpcurl -v -plaintext -H 'authorization: Bearer carol' -H 'idempotency-key: "8e03978e-40d5"' -d '{"account":{"id":"carol"},"payee":{"id":"dave"},"cents":500}' $addr reqlock.bank.v1.Bank/Transfer
`
