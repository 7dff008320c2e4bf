'use strict'
// The cases of the client matrix, played by kafkajs.

const { Kafka, logLevel } = require('kafkajs')

const kafka = new Kafka({ clientId: 'kafkajs', brokers: [process.argv[2]], logLevel: logLevel.ERROR, logCreator })
const admin = kafka.admin()

/** Standard output is for the results. */
function logCreator() {
  return ({ log }) => console.error(JSON.stringify(log))
}

/** The client itself has no way to do what the case asks for. */
class Limit extends Error {}

function check(holds, otherwise) {
  if (!holds) throw new Error(otherwise)
}

/** Fails when a promise takes too long. */
function within(what, promise, ms = 120000) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('waited in vain for ' + what)), ms)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

async function create(topic, numPartitions) {
  await admin.createTopics({ topics: [{ topic, numPartitions, replicationFactor: 1 }], waitForLeaders: true })
}

async function produce(topic, n) {
  const producer = kafka.producer()
  await producer.connect()
  const messages = Array.from({ length: n }, (_, i) => ({ key: `key-${i}`, value: `value-${i}` }))
  await producer.send({ topic, messages })
  await producer.disconnect()
}

/** Starts a consumer that keeps what it has read and resolves full once that is n records. */
async function consume(groupId, topic, n, options = {}) {
  const consumer = kafka.consumer({ groupId, sessionTimeout: 30000, heartbeatInterval: 500, ...options })
  const records = []
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  const full = new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
    consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => {
        records.push({ partition, offset: Number(message.offset), key: message.key.toString(), value: message.value.toString() })
        if (records.length === n) resolve()
      },
    }).catch(reject)
  })
  return { consumer, records, full: within(`${n} records`, full) }
}

/** The offsets to commit behind records. */
function behind(topic, records) {
  const next = new Map()
  for (const r of records) next.set(r.partition, r.offset + 1)
  return [...next].map(([partition, offset]) => ({ topic, partition, offset: String(offset) }))
}

async function committed(groupId, topic) {
  const [{ partitions }] = await admin.fetchOffsets({ groupId, topics: [topic] })
  return partitions.reduce((sum, p) => sum + Math.max(0, Number(p.offset)), 0)
}

async function produceConsume() {
  const name = 'produce-consume'
  await create(name, 4)
  await produce(name, 100)
  const { consumer, records, full } = await consume(name, name, 100)
  await full
  await consumer.commitOffsets(behind(name, records))
  check((await committed(name, name)) === 100, `committed ${await committed(name, name)}`)
  await consumer.disconnect()
}

async function administer() {
  const name = 'admin'
  await create(name, 3)
  await produce(name, 30)
  const { consumer, records, full } = await consume(name, name, 30)
  await full
  await consumer.commitOffsets(behind(name, records))
  const { topics } = await admin.fetchTopicMetadata({ topics: [name] })
  check(topics[0].partitions.length === 3, 'partitions')
  const { groups } = await admin.describeGroups([name])
  check(groups[0].state === 'Stable' && groups[0].members.length === 1, 'description ' + groups[0].state)
  await consumer.disconnect()
  const listed = async () => (await admin.listGroups()).groups.some(g => g.groupId === name)
  check(await listed(), 'the group is not listed')
  check((await committed(name, name)) === 30, 'offsets')
  await admin.setOffsets({ groupId: name, topic: name, partitions: [{ partition: 0, offset: '0' }] })
  const [{ partitions }] = await admin.fetchOffsets({ groupId: name, topics: [name] })
  check(partitions.find(p => p.partition === 0).offset === '0', 'altered offset')
  check((await admin.fetchTopicOffsets(name)).every(p => Number(p.high) > 0), 'end offsets')
  await admin.deleteGroups([name])
  check(!(await listed()), 'the group is still listed')
  await admin.deleteTopics({ topics: [name] })
  check(!(await admin.listTopics()).includes(name), 'the topic is still listed')
}

/** Asks for an instance id and looks whether the group has seen it. */
async function noStaticMembers(name) {
  await create(name, 1)
  await produce(name, 1)
  const { consumer, full } = await consume(name, name, 1, { groupInstanceId: 'a', 'group.instance.id': 'a' })
  await full
  const { groups } = await admin.describeGroups([name])
  const instances = groups[0].members.filter(m => m.groupInstanceId || m.memberId.startsWith('a-'))
  await consumer.disconnect()
  check(instances.length === 0, 'the client can be a static member by now: play the case')
  throw new Limit('no static membership: there is no way to set group.instance.id')
}

async function transactions() {
  await create('transactions-in', 1)
  await create('transactions-out', 1)
  await produce('transactions-in', 20)
  const source = await consume('transactions', 'transactions-in', 20)
  await source.full
  const producer = kafka.producer({ transactionalId: 'transactions', maxInFlightRequests: 1, idempotent: true })
  await producer.connect()
  for (const half of [0, 10]) {
    const txn = await producer.transaction()
    const messages = source.records.slice(half, half + 10).map(({ key, value }) => ({ key, value }))
    await txn.send({ topic: 'transactions-out', messages })
    await txn.sendOffsets({
      consumerGroupId: 'transactions',
      topics: [{ topic: 'transactions-in', partitions: [{ partition: 0, offset: String(half + 10) }] }],
    })
    await (half === 0 ? txn.commit() : txn.abort())
  }
  await producer.disconnect()
  await source.consumer.disconnect()
  check((await committed('transactions', 'transactions-in')) === 10, 'committed offset')
  await produce('transactions-out', 1) // marks the end for the reader
  const reader = await consume('transactions-reader', 'transactions-out', 11)
  await reader.full
  const want = source.records.slice(0, 10).map(r => r.value).concat('value-0')
  check(JSON.stringify(reader.records.map(r => r.value)) === JSON.stringify(want), `read committed: ${reader.records.map(r => r.value)}`)
  await reader.consumer.disconnect()
}

const cases = {
  'produce-consume': produceConsume,
  admin: administer,
  'static-bounce': () => noStaticMembers('static-bounce'),
  fenced: () => noStaticMembers('fenced'),
  'batch-removal': async () => {
    check(!Object.keys(admin).some(k => /remove.*member/i.test(k)), 'the client can remove members by now: play the case')
    throw new Limit('no admin request that removes members by instance id')
  },
  transactions,
}

async function main() {
  await admin.connect()
  for (const [name, body] of Object.entries(cases)) {
    const line = { case: name }
    try {
      await body()
      line.ok = true
    } catch (e) {
      if (e instanceof Limit) {
        line.limit = e.message
      } else {
        console.error(e)
        line.error = String(e)
      }
    }
    console.log(JSON.stringify(line))
  }
  await admin.disconnect()
}

main().then(() => process.exit(0), e => {
  console.error(e)
  process.exit(1)
})
