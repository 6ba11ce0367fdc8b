package storetest

import (
	"context"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// The names of what a record has in its place, in the fields of a State.
const (
	AnyText = "text" // a text that is no record
	AnyHash = "hash" // a hash, which was the type of a record before records were strings
)

// EncodeRecord returns the record of these fields as state.lua writes it.
func EncodeRecord(fields map[string]string) string {
	size := func(name string) string {
		if value, ok := fields[name]; ok {
			return strconv.Itoa(len(value))
		}
		return ""
	}
	sizes := strings.Join([]string{size("f"), fields["n"], size("r"), size("x"), fields["u"]}, ",")
	if more, isShort := strings.CutSuffix(sizes, ",,,,"); isShort {
		sizes = more
	}
	return fields["s"] + fields["t"] + " " + sizes + " " + fields["r"] + fields["f"] + fields["x"] + fields["p"]
}

var recordForm = regexp.MustCompile(`(?s)^([RDUA])([^ :]+:[^ ]+) (\d*)(?:,(\d*),(\d*),(\d*),(1?))? (.*)$`)

// DecodeRecord returns the fields of a record that EncodeRecord or a script has written, or the field AnyText.
func DecodeRecord(text string) map[string]string {
	parts := recordForm.FindStringSubmatch(text)
	if parts == nil {
		return map[string]string{AnyText: text}
	}
	fields := map[string]string{"s": parts[1], "t": parts[2]}
	for name, value := range map[string]string{"n": parts[4], "u": parts[7]} {
		if value != "" {
			fields[name] = value
		}
	}
	rest := parts[8]
	for _, field := range [...]struct{ name, size string }{{"r", parts[5]}, {"f", parts[3]}, {"x", parts[6]}} {
		if field.size == "" {
			continue
		}
		n, err := strconv.Atoi(field.size)
		if err != nil || n > len(rest) {
			return map[string]string{AnyText: text}
		}
		fields[field.name], rest = rest[:n], rest[n:]
	}
	if fields["s"] == "D" || rest != "" {
		fields["p"] = rest
	}
	return fields
}

// PutRecord writes a record of these fields, or what AnyText and AnyHash say.
func PutRecord(ctx context.Context, pipe redis.Cmdable, name string, fields map[string]string, ttl time.Duration) {
	text, isText := fields[AnyText]
	switch {
	case isText:
		pipe.Set(ctx, name, text, ttl)
	case fields[AnyHash] != "":
		pipe.HSet(ctx, name, fields)
		pipe.PExpire(ctx, name, ttl)
	default:
		pipe.Set(ctx, name, EncodeRecord(fields), ttl)
	}
}

// RecordAt returns the fields of the record with this name, or nil if there is none.
func RecordAt(tb testing.TB, rdb redis.UniversalClient, name string) map[string]string {
	tb.Helper()
	text, err := rdb.Get(context.Background(), name).Result()
	switch {
	case err == nil:
		return DecodeRecord(text)
	case strings.HasPrefix(err.Error(), "WRONGTYPE"):
		return rdb.HGetAll(context.Background(), name).Val()
	default:
		return nil
	}
}

// ChangeRecord sets fields of the record with this name; "" removes a field. The record keeps its TTL.
func ChangeRecord(tb testing.TB, rdb redis.UniversalClient, name string, changes map[string]string) {
	tb.Helper()
	fields := maps.Clone(RecordAt(tb, rdb, name))
	if fields == nil {
		tb.Fatalf("there is no record %q", name)
	}
	maps.Copy(fields, changes)
	maps.DeleteFunc(fields, func(_, value string) bool { return value == "" })
	if err := rdb.Set(context.Background(), name, EncodeRecord(fields), redis.KeepTTL).Err(); err != nil {
		tb.Fatal(err)
	}
}
