package adapter

import "testing"

// A framework may render the JSON of a refusal with other whitespace.
func TestWhatIsBehindADocument(t *testing.T) {
	t.Parallel()
	const document = `{"status":409,"code":"busy"}` + "\n"
	for name, test := range map[string]struct {
		body, document string
		rest           string
		found          bool
	}{
		"the document":           {document, document, "", true},
		"and more":               {document + "queued", document, "queued", true},
		"indented":               {"{\n\t\"status\": 409,\n\t\"code\": \"busy\"\n}", document, "", true},
		"indented, and more":     {`{ "status": 409, "code": "busy" }queued`, document, "queued", true},
		"another document":       {`{"status":409,"code":"other"}`, document, "", false},
		"a part of the document": {`{"status":409,"co`, document, "", false},
		"no JSON":                {"queued", document, "", false},
		"text":                   {"locked, queued", "locked", ", queued", true},
		"JSON instead of text":   {`"locked"`, "locked", "", false},
		"no document":            {"queued", "", "queued", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rest, found := behind([]byte(test.body), []byte(test.document))
			if found != test.found || found && string(rest) != test.rest {
				t.Errorf("%q, %v", rest, found)
			}
		})
	}
}
