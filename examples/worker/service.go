package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

// A job is the payload of a task.
type job struct {
	Order, Account string
	Lock           core.Ticket // a secret: its reader can take the lock. Do not log a job
}

// A service takes orders, and leaves the work to a worker.
type service struct {
	locks  *core.Locker
	orders orders
	jobs   *asynq.Client
	grace  time.Duration
}

// routes returns the handler. Idempotent is outside: it stores the 202 with its Location, and a copy of
// the request makes no second order.
func (s *service) routes() http.Handler {
	once := nethttplock.Idempotent(s.locks, nethttplock.IdempotencyKey())
	alone := nethttplock.Middleware(s.locks, nethttplock.PathValue("account").Named("account"), core.WithWait(10*time.Second))
	mux := http.NewServeMux()
	mux.Handle("POST /accounts/{account}/orders", once(alone(http.HandlerFunc(s.order))))
	mux.HandleFunc("GET /orders/{id}", s.status)
	return mux
}

// order writes the order under the lock of the account, and hands the lock over to the worker.
func (s *service) order(w http.ResponseWriter, r *http.Request) {
	lease, _ := core.LeaseFromContext(r.Context())
	ctx := context.WithoutCancel(r.Context()) // that of the request ends with the lease
	onStep("service begins")
	order := job{Order: rand.Text(), Account: r.PathValue("account")}
	if err := s.orders.set(ctx, order.Order, "pending", lease.Fence()); err != nil {
		http.Error(w, "try again", http.StatusServiceUnavailable) // no effect: a copy runs
		return
	}
	onStep("service ends")
	var err error
	if order.Lock, err = lease.Handover(ctx, s.grace); err != nil {
		nethttplock.WriteError(w, r, err)
		return
	}
	onStep("handed over")
	payload, err := json.Marshal(order)
	if err == nil {
		_, err = s.jobs.EnqueueContext(ctx, asynq.NewTask("order", payload))
	}
	if err != nil {
		if lease, failed := s.locks.Accept(ctx, order.Lock); failed == nil { // there may be a job: it gets ErrChanged
			_ = lease.Release(ctx)
		}
		http.Error(w, "the order may exist", http.StatusInternalServerError)
		return
	}
	onStep("enqueued")
	w.Header().Set("Location", "/orders/"+order.Order)
	w.WriteHeader(http.StatusAccepted)
}

// status answers with what became of the order.
func (s *service) status(w http.ResponseWriter, r *http.Request) {
	state, err := s.orders.state(r.Context(), r.PathValue("id"))
	switch {
	case err != nil:
		http.Error(w, "try again", http.StatusServiceUnavailable)
	case state == "":
		http.NotFound(w, r)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"state": state})
	}
}

// orders stand for the database.
type orders struct{ rdb *redis.Client }

// setOrder refuses the write of an earlier holder, which has a lower fencing number.
var setOrder = redis.NewScript(`
if tonumber(redis.call('HGET', KEYS[1], 'fence') or 0) > tonumber(ARGV[2]) then return 0 end
return redis.call('HSET', KEYS[1], 'state', ARGV[1], 'fence', ARGV[2]) and 1`)

func (o orders) set(ctx context.Context, id, state string, fence int64) error {
	return setOrder.Run(ctx, o.rdb, []string{"order:" + id}, state, fence).Err()
}

func (o orders) state(ctx context.Context, id string) (string, error) {
	state, err := o.rdb.HGet(ctx, "order:"+id, "state").Result()
	if err == redis.Nil { //nolint:errorlint // as go-redis returns it
		return "", nil
	}
	return state, err
}
