package campaign

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/tests/faults/internal/fault"
)

func TestClientsAtFullSpeedHaveOneKeyAndNoNetwork(t *testing.T) {
	r := Run{Fault: fault.Fault{FullSpeed: &fault.Callers{Processes: 3, Clients: 2}}}
	s := r.workloadSettings(redistest.Options{}, func(int) map[string]string { return map[string]string{"a": "b"} })
	if !s.FullSpeed || s.Processes != 3 || s.Clients != 2 || s.Routes != nil {
		t.Errorf("got %+v", s)
	}
}

func TestWhatTheClientsOfADeploymentAskOfIt(t *testing.T) {
	for on, want := range map[fault.Deployment]struct {
		replicas    int // if the fault does not set a number
		two         int // if the fault sets two
		quorum, pay bool
	}{
		fault.OnServer:            {0, 0, false, true},
		fault.OnSentinels:         {0, 0, false, true},
		fault.OnCluster:           {0, 0, false, true},
		fault.OnQuorum:            {0, 0, true, false},
		fault.OnSentinelsReplicas: {1, 2, false, true},
		fault.OnClusterReplicas:   {1, 2, false, true},
	} {
		s := Run{On: on}.workloadSettings(redistest.Options{}, nil)
		if s.Replicas != want.replicas || (s.Quarantine != 0) != want.quorum || (s.Attempts >= 0) != want.pay {
			t.Errorf("%v: %+v", on, s)
		}
		if s := (Run{On: on, Fault: fault.Fault{Replicas: 2}}).workloadSettings(redistest.Options{}, nil); s.Replicas != want.two {
			t.Errorf("%v, with two replicas: %+v", on, s)
		}
	}
}

func TestSettingsOfAFaultReachItsClients(t *testing.T) {
	r := Run{Fault: fault.Fault{Clients: 7, FailFast: time.Second, MinHold: time.Minute}}
	s := r.workloadSettings(redistest.Options{}, nil)
	if s.Clients != 7 || s.FailFast != time.Second || s.MinHold != time.Minute {
		t.Errorf("got %+v", s)
	}
}
