package redistest

// Rights is what a user of Redis has to be granted for reqlock, and no more: the
// keys and channels of the prefix "reqlock:", and commands. A client of a cluster
// needs ClusterRights as well. README.md and the package documentation of core
// carry both, word by word.
const Rights = "~reqlock:* ~{reqlock:* &reqlock:* " +
	"+del +eval +evalsha +exists +get +hget +hmget +hset +lindex +llen +lpop +lpos +lrem +pexpire +pttl +publish +rpush +set +subscribe +time"

// ClusterRights is what a client of a cluster needs besides.
const ClusterRights = "&{reqlock:* +asking +cluster|slots +spublish +ssubscribe +sunsubscribe"
